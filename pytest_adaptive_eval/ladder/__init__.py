"""Tests level by level: policies, results and schedules."""
