"""Every component: example, calls, oracle, and what each field changes."""
