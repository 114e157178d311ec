"""Tests of questions to the application: each is an event, and its answer a verb."""
