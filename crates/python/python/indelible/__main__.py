"""`python -m indelible` is `pmo`."""

from ._tool import pmo

pmo()
