"""The second process: it folds the ledger stream into metrics, a JSON API and a status page, and sends orders back."""
