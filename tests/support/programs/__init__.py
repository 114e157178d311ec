"""Programs that tests start as processes: servers, clients, and callers that are interrupted."""
