"""What several test files share; imported by its full name, `tests.helpers.<module>`."""
