"""Tests with a real authorization server: `oidc-provider`, a certified package of npm."""
