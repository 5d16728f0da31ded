"""Tables whose leak is known by construction, and what each command says of them."""
