"""Programs that tests run as processes: servers, clients, and programs that a user interrupts."""
