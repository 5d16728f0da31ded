#!/bin/sh
# TenSEAL 0.3.18, CKKS, one vector used twice.
# Guess: a product leaves its two ciphertexts as they were; if their levels differ, a copy of one is switched down.
# Behaviour: the vector on the right is switched down itself, and stays so: shorter, and with one product fewer left.
# A ciphertext that is kept for the next round depends on what it has met.
# Output seen: e: 330 kB, its cube 27.00; after p * e 230 kB, its cube: scale out of bounds
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps tenseal==0.3.18 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import tenseal

context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60])
context.global_scale = 2**40
context.generate_relin_keys()


def encrypt():
    return tenseal.ckks_vector(context, [0.5, -1.25, 3.0])


def cube(vector):
    try:
        return f"{(vector * vector * vector.copy()).decrypt()[2]:.2f}"
    except ValueError as error:
        return str(error)


one, e = encrypt(), encrypt()
square = one * one
before = len(e.serialize()), cube(e)
square * e
after = len(e.serialize()), cube(e)
print(f"e: {before[0] // 10**4}0 kB, its cube {before[1]}; after p * e {after[0] // 10**4}0 kB, its cube: {after[1]}")
assert after[0] < 0.8 * before[0] and before[1] == "27.00" and after[1] == "scale out of bounds"
END
