"""Tests of questions to the application: each is an event, which the application answers by a
verb."""
