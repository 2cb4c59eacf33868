"""Workers never wait for each other; a server applies what comes."""
