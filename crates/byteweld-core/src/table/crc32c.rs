//! CRC-32C (Castagnoli), the checksum of BPE1 sections: eight bytes at a time, from tables.

/// 0x1EDC6F41, bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// `TABLES[n][b]` is what byte `b` contributes if `n` more bytes follow it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut follow = 1;
    while follow < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[follow - 1][byte];
            tables[follow][byte] = (crc >> 8) ^ tables[0][(crc & 0xFF) as usize];
            byte += 1;
        }
        follow += 1;
    }
    tables
}

/// Returns the CRC-32C of some data.
pub fn crc32c(data: &[u8]) -> u32 {
    let (blocks, rest) = data.as_chunks::<8>();
    let mut crc = u32::MAX;
    for block in blocks {
        let word = u64::from_le_bytes(*block) ^ u64::from(crc);
        let bytes = word.to_le_bytes();
        crc = 0;
        for (table, byte) in TABLES.iter().rev().zip(bytes) {
            crc ^= table[usize::from(byte)];
        }
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc.to_le_bytes()[0] ^ byte)];
    }
    !crc
}
