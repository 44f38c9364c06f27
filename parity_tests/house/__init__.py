"""The house itself: imports, mirror, examples, README, the ledger, the seeds."""
