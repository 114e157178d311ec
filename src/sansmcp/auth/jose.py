"""Keys and signatures for `sansmcp.auth`, by joserfc: the extra `oauth-jwt`.

Nothing else of the library imports this module, so that no cryptography is loaded without need. An
object of your own with the same methods can stand in, for a key in hardware or for PyJWT.
"""

try:
    from ._jose.signers import Signer, assertion_signer, new_proof_signer, proof_signer
    from ._jose.verifiers import JWTProofReader, JWTVerifier
except ModuleNotFoundError as _error:
    if _error.name != "joserfc":
        raise
    _text = f"{__name__} needs joserfc: pip install 'sansmcp[oauth-jwt]'"
    raise ModuleNotFoundError(_text, name=_error.name) from _error

__all__ = [
    "JWTProofReader",
    "JWTVerifier",
    "Signer",
    "assertion_signer",
    "new_proof_signer",
    "proof_signer",
]
