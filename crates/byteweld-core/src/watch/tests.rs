use super::*;

#[test]
fn all_threads_stop_when_the_caller_wants_to() {
    let (mut first, mut other) = Watch::new(|| true).shared();
    first.look().unwrap(); // starts the clock
    std::thread::sleep(2 * INTERVAL);
    other.worked(2 * WORK).unwrap();
    assert!(matches!(first.worked(2 * WORK), Err(Error::Interrupted)));
    assert!(matches!(other.worked(2 * WORK), Err(Error::Interrupted)));
}

#[test]
fn a_watch_without_a_question_never_stops() {
    let (mut first, mut other) = Watch::default().shared();
    for _ in 0..10 {
        first.worked(WORK).unwrap();
        other.worked(WORK).unwrap();
    }
}
