"""Transactions: arrays that threads change at once, by names of their own."""

from ._errors import AfterCommit, Conflict, InTransaction
from ._transactions import Pending, Tx, TxArray, TxElements, transaction

__all__ = [
    "AfterCommit",
    "Conflict",
    "InTransaction",
    "Pending",
    "Tx",
    "TxArray",
    "TxElements",
    "transaction",
]
