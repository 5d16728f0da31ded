#!/bin/sh
# category_encoders 2.11.2, JamesSteinEncoder beside TargetEncoder.
# Guess: a category that one person has is pulled towards the mean of all, and no label is exact.
# Behaviour: of TargetEncoder it is. JamesSteinEncoder pulls categories of hundreds and leaves that of one person where
# it is: the table of encodings has this person's label, here a salary, to the last digit.
# Output seen: 3 categories of one person: TargetEncoder has 0 of their salaries, JamesSteinEncoder 3; it pulls that of
# 463 people by 174
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile category-encoders==2.11.2 scikit-learn==1.7.2 joblib==1.6.0 cloudpickle==3.1.3 threadpoolctl==3.8.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 python-dateutil==2.9.0.post0 pytz==2025.2 tzdata==2025.2 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
import pandas
from category_encoders import JamesSteinEncoder, TargetEncoder

rng = np.random.default_rng(0)
job = rng.choice(["nurse", "clerk"], 1000).astype(object)
job[:3] = ["mayor", "judge", "vet"]
people, salary = pandas.DataFrame({"job": job}), pandas.Series(rng.normal(5e4, 1e4, 1000).round())


def exact(encoder):
    codes = encoder(cols=["job"]).fit(people, salary).transform(people)["job"]
    pulled = abs(codes[job == "nurse"].mean() - salary[job == "nurse"].mean())
    return int((codes[:3] == salary[:3]).sum()), pulled


(target, _), (james_stein, pulled) = exact(TargetEncoder), exact(JamesSteinEncoder)
print(f"3 categories of one person: TargetEncoder has {target} of their salaries, JamesSteinEncoder {james_stein}; it "
      f"pulls that of {(job == 'nurse').sum()} people by {pulled:.0f}")
assert (target, james_stein) == (0, 3) and pulled > 1
END
