//! Limits of clients by user: no user's clients keep out another user's, and none keep out root.

use std::collections::BTreeMap;

/// Most clients. Each takes two descriptors, of 1024 by default.
const CLIENTS: usize = 400;
/// For root and the guard's own user alone.
const RESERVED: usize = 80;
const OF_A_USER: usize = 100;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// A client of this user, with the most clients, must leave for it.
    Of(u32),
    None,
}

/// Whether the guard answers this user: its own, or root.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

pub(crate) fn room(user: u32, others: impl Iterator<Item = u32>) -> Room {
    let (mut all, mut of_users) = (0, BTreeMap::<u32, usize>::new());
    for other in others {
        all += 1;
        *of_users.entry(other).or_default() += 1;
    }
    if is_trusted(user) {
        return if all < CLIENTS { Room::Free } else { Room::None };
    }
    of_users.retain(|user, _| !is_trusted(*user));
    let own = of_users.get(&user).copied().unwrap_or(0);
    if own >= OF_A_USER {
        return Room::None;
    }
    if of_users.values().sum::<usize>() < CLIENTS - RESERVED && all < CLIENTS {
        return Room::Free;
    }
    match of_users.iter().max_by_key(|(_, count)| **count) {
        Some((most, count)) if *count > own + 1 => Room::Of(*most),
        _ => Room::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn let_in(inside: &mut Vec<u32>, user: u32) -> bool {
        match room(user, inside.iter().copied()) {
            Room::None => return false,
            Room::Free => {}
            Room::Of(most) => drop(inside.remove(inside.iter().position(|user| *user == most).unwrap())),
        }
        inside.push(user);
        true
    }

    #[test]
    fn users_have_equal_room_and_root_has_its_own() {
        let first = rustix::process::geteuid().as_raw() + 1;
        let mut inside = Vec::new();
        for user in first..first + 4 {
            assert!((0..200).filter(|_| let_in(&mut inside, user)).count() > 79);
        }
        let count = |inside: &[u32], user| inside.iter().filter(|other| **other == user).count();
        assert_eq!(inside.len(), CLIENTS - RESERVED);
        (first..first + 4).for_each(|user| assert!(count(&inside, user) >= 79, "{inside:?}"));
        assert!((0..200).filter(|_| let_in(&mut inside, first + 9)).count() > 62);
        assert!(count(&inside, first + 9) >= 63, "{inside:?}");
        assert_eq!(inside.len(), CLIENTS - RESERVED);
        for nth in 0..RESERVED {
            assert!(let_in(&mut inside, 0), "{nth}");
        }
        assert!(!let_in(&mut inside, 0));
        assert!(let_in(&mut inside, first + 10));
        assert_eq!(inside.len(), CLIENTS);
    }

    #[test]
    fn one_user_has_a_part_of_the_room() {
        let user = rustix::process::geteuid().as_raw() + 1;
        let mut inside = Vec::new();
        (0..OF_A_USER).for_each(|_| assert!(let_in(&mut inside, user)));
        assert!(!let_in(&mut inside, user));
    }
}
