"""The test suite. What several test files share is in `tests.helpers`."""
