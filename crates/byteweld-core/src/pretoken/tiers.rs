//! One pattern in every SIMD tier, for the fuzz targets.

use super::masks::Tier;
use super::*;

impl Pretokenizer {
    /// The pattern's scanner without blocks, and then with blocks in every tier that runs here, each
    /// with its name; empty if the pattern does not run on a scanner.
    pub fn in_tiers(pattern: &str) -> Vec<(String, Self)> {
        let make = |tier: Option<Tier>| {
            let alternatives = normalise::alternatives(pattern)?;
            let scanner = Scanner::new(&Spec::new(&alternatives)?)?.in_tier(tier);
            let automaton = Lazy::new();
            let kind = Kind::Scanner(Box::new(Scanned { scanner, alternatives, automaton }));
            let name = tier.map_or("characters".to_owned(), |tier| format!("{tier:?}"));
            Some((name, Self { kind: Arc::new(kind) }))
        };
        let tiers = Tier::all().into_iter().map(Some);
        std::iter::once(None).chain(tiers).filter_map(make).collect()
    }
}
