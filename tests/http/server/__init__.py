"""Tests of server endpoints."""
