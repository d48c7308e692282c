"""Operations in mpmath, of LU by elimination: nothing that knows a derivative."""

import mpmath


def _pinv(a):
    if a.rows < a.cols:
        return a.H * mpmath.inverse(a * a.H)
    return mpmath.inverse(a.H * a) * a.H


def _lu(a, order):
    """Doolittle's L and U of rows in this order."""
    m, n, k = a.rows, a.cols, min(a.rows, a.cols)
    rest = mpmath.matrix([[a[int(i), j] for j in range(n)] for i in order])
    L, U = mpmath.matrix(m, k), mpmath.matrix(k, n)
    for step in range(k):
        for j in range(step, n):
            U[step, j] = rest[step, j]
        L[step, step] = 1
        for i in range(step + 1, m):
            L[i, step] = rest[i, step] / rest[step, step]
            for j in range(step, n):
                rest[i, j] -= L[i, step] * U[step, j]
    return L, U


def _packed(a, order):
    L, U = _lu(a, order)
    entries = [[L[i, j] if j < i else U[i, j] for j in range(a.cols)] for i in range(a.rows)]
    return (mpmath.matrix(entries),)


def _lower(a):
    entries = [[a[i, j] if j <= i else 0 for j in range(a.cols)] for i in range(a.rows)]
    return mpmath.matrix(entries)


def _slogdet(a, is_complex):
    det = mpmath.det(a)
    logarithm = mpmath.matrix([[mpmath.log(abs(det))]])
    return (mpmath.matrix([[det / abs(det)]]), logarithm) if is_complex else (logarithm,)


def forward(operation, order, is_complex):
    """The results of an operation as a function of its inputs; of LU, of rows in this order."""
    return {
        "cholesky": lambda A: (mpmath.cholesky(A),),
        "cholesky_inverse": lambda L: (mpmath.inverse(_lower(L) * _lower(L).H),),
        "cholesky_solve": lambda L, B: (mpmath.inverse(_lower(L) * _lower(L).H) * B,),
        "det": lambda A: (mpmath.matrix([[mpmath.det(A)]]),),
        "slogdet": lambda A: _slogdet(A, is_complex),
        "inv": lambda A: (mpmath.inverse(A),),
        "lstsq": lambda A, B: (_pinv(A) * B,),
        "lu_factor": lambda A: _packed(A, order),
        "lu": lambda A: _lu(A, order),
        "pinv": lambda A: (_pinv(A),),
        "solve": lambda A, B: (mpmath.inverse(A) * B,),
    }[operation]


def moved(inputs, directions, step):
    """X + step D of each."""
    return [x + d * step for x, d in zip(inputs, directions, strict=True)]


def paired(one, other):
    """Re ⟨one, other⟩ of lists of matrices."""
    return mpmath.fsum(
        mpmath.re(mpmath.conj(x) * y)
        for a, b in zip(one, other, strict=True)
        for x, y in zip(a, b, strict=True)
    )
