"""The specification of experiments, the choices they are made of, and what is known of this machine."""
