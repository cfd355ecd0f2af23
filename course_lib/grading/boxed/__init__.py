"""What runs inside the sandbox: no check and no answer is known here."""
