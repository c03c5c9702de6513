"""The ledger: every event and decision of a pool, appended, read, folded, replayed, audited and explained."""
