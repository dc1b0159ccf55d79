use crate::model::Point;

/// The slope in logarithms: 1 is proportional, 0 is constant. `None` with fewer than three places.
pub fn slope(points: &[Point]) -> Option<f64> {
    let logarithms: Vec<(f64, f64)> = points.iter().map(|point| (point.x.ln(), point.y.ln())).collect();
    let count = logarithms.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = logarithms.iter().map(|point| (point.0 - x).powi(2)).sum();
    if logarithms.len() < 3 || spread == 0.0 {
        return None;
    }
    Some(logarithms.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_found() {
        let points = |power: f64| -> Vec<Point> {
            let point = |x: f64| Point { x, y: 3.0 * x.powf(power), low: 0.0, high: 0.0 };
            [1.0, 10.0, 100.0, 1000.0].map(point).to_vec()
        };
        for power in [0.0, 0.5, 1.0, 2.0] {
            assert!((slope(&points(power)).unwrap() - power).abs() < 1e-9);
        }
        assert_eq!(slope(&points(1.0)[..2]), None);
    }
}
