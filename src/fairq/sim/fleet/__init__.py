"""Several engines behind a router: who goes next, to which engine, and who goes next there."""
