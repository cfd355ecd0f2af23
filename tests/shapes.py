"""How the tests check signatures: shapes by jaxtyping, types by beartype."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is welcome where a float is
