#!/bin/sh
# TenSEAL 0.3.18, CKKS, coefficient moduli of 60, 40, 40, 60 bits and scale 2^40.
# Guess: a value too large for the ciphertext is refused with an error.
# Behaviour: nothing is refused, and the room for a value shrinks with each product. Ten million squared comes back; the
# cube of 150, which is far smaller, comes back as another number. A test on small values shows nothing of it.
# Output seen: 1e7 squared / 1e14 = 1.000; 100 cubed / 1e6 = 1.000; 150 cubed / 3375000 = -0.061
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


def share(value, power):
    product = tenseal.ckks_vector(context, [value, 1.0])
    for _ in range(power - 1):
        product = product * tenseal.ckks_vector(context, [value, 1.0])
    return product.decrypt()[0] / value**power


square, small, large = share(1e7, 2), share(100.0, 3), share(150.0, 3)
print(f"1e7 squared / 1e14 = {square:.3f}; 100 cubed / 1e6 = {small:.3f}; 150 cubed / 3375000 = {large:.3f}")
assert abs(square - 1) < 1e-3 and abs(small - 1) < 1e-3 and abs(large - 1) > 0.5
END
