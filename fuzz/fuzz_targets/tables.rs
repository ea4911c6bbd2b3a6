#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    byteweld_fuzz::tables::run(input);
});
