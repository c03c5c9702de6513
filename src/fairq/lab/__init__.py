"""The lab: runs scenarios for a page that only plays them. Everything is computed here and sent as whole steps."""
