"""Validation: what judges uncertainties, what it says, and what it advises."""
