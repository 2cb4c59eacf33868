"""Workers never wait for each other; a server applies updates as they arrive."""
