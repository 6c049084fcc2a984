//! Arithmetic of DECIMAL(p, s), by unscaled values of scale s.

use arrow_buffer::i256;

use super::numbers::{Math, MathError};

/// Exact arithmetic, rounded half up (away from zero) to the scale; what has more digits than the precision is an overflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecimalMath {
    pub(super) precision: u8,
    pub(super) scale: u8,
}

impl DecimalMath {
    fn fit(&self, value: i256) -> Result<i128, MathError> {
        let limit = i256::from_i128(10).wrapping_pow(self.precision.into());
        match value.to_i128() {
            Some(small) if value.wrapping_abs() < limit => Ok(small),
            _ => Err(MathError::Overflow),
        }
    }

    fn one(&self) -> i256 {
        i256::from_i128(10).wrapping_pow(self.scale.into())
    }
}

/// The quotient, rounded half away from zero. `divisor` is not zero.
fn divide_half_up(value: i256, divisor: i256) -> i256 {
    let quotient = value.wrapping_div(divisor);
    let rest = value.wrapping_rem(divisor);
    let twice = rest.wrapping_abs().wrapping_mul(i256::from_i128(2));
    if twice < divisor.wrapping_abs() {
        return quotient;
    }
    let positive = value.is_negative() == divisor.is_negative();
    quotient.wrapping_add(i256::from_i128(if positive { 1 } else { -1 }))
}

/// Whether a quotient has an end: its denominator, in lowest terms, has no prime factors besides 2 and 5.
fn terminates(value: i128, divisor: i128) -> bool {
    let (mut a, mut b) = (value.unsigned_abs(), divisor.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let mut denominator = divisor.unsigned_abs() / a.max(1);
    for prime in [2, 5] {
        while denominator.is_multiple_of(prime) && denominator > 0 {
            denominator /= prime;
        }
    }
    denominator == 1
}

impl Math<i128> for DecimalMath {
    fn negate(&self, value: i128) -> Result<i128, MathError> {
        self.fit(i256::from_i128(value).wrapping_neg())
    }

    fn add(&self, left: i128, right: i128) -> Result<i128, MathError> {
        self.fit(i256::from_i128(left).wrapping_add(i256::from_i128(right)))
    }

    fn subtract(&self, left: i128, right: i128) -> Result<i128, MathError> {
        self.fit(i256::from_i128(left).wrapping_sub(i256::from_i128(right)))
    }

    // Two values of 38 digits have a product of 76 digits, which 256 bits hold.
    fn multiply(&self, left: i128, right: i128) -> Result<i128, MathError> {
        let product = i256::from_i128(left).wrapping_mul(i256::from_i128(right));
        self.fit(divide_half_up(product, self.one()))
    }

    fn divide(&self, left: i128, right: i128) -> Result<i128, MathError> {
        if right == 0 {
            return Err(MathError::Undefined("division by zero"));
        }
        if !terminates(left, right) {
            return Err(MathError::Undefined("the quotient has no exact decimal form"));
        }
        let scaled = i256::from_i128(left).wrapping_mul(self.one());
        self.fit(divide_half_up(scaled, i256::from_i128(right)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATH: DecimalMath = DecimalMath { precision: 5, scale: 2 };

    #[test]
    fn results_are_exact_or_refused() {
        assert_eq!(MATH.add(99_998, 1), Ok(99_999));
        assert_eq!(MATH.add(99_999, 1), Err(MathError::Overflow));
        assert_eq!(MATH.negate(-99_999), Ok(99_999));
        assert_eq!(MATH.subtract(-99_999, 1), Err(MathError::Overflow));
        // 1.05 * 1.50 = 1.575, -1.05 * 1.50 = -1.575
        assert_eq!(MATH.multiply(105, 150), Ok(158));
        assert_eq!(MATH.multiply(-105, 150), Ok(-158));
        assert_eq!(MATH.multiply(99_999, 200), Err(MathError::Overflow));
        // 1.00 / 8.00 = 0.125
        assert_eq!(MATH.divide(100, 800), Ok(13));
        assert_eq!(MATH.divide(300, 300), Ok(100));
        assert_eq!(MATH.divide(0, 300), Ok(0));
        assert!(matches!(MATH.divide(100, 300), Err(MathError::Undefined(_))));
        assert_eq!(MATH.divide(100, 0), Err(MathError::Undefined("division by zero")));
    }

    #[test]
    fn the_widest_decimals_do_not_wrap() {
        let wide = DecimalMath {
            precision: 38,
            scale: 0,
        };
        let most = 10_i128.pow(38) - 1;
        assert_eq!(wide.add(most, 1), Err(MathError::Overflow));
        assert_eq!(wide.add(most, most), Err(MathError::Overflow));
        assert_eq!(wide.multiply(most, most), Err(MathError::Overflow));
        assert_eq!(wide.multiply(most, -1), Ok(-most));
        let fine = DecimalMath {
            precision: 38,
            scale: 38,
        };
        assert_eq!(fine.multiply(most, most), Ok(most - 1));
        assert_eq!(fine.divide(most, most), Err(MathError::Overflow));
    }
}
