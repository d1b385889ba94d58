/** The version of this package, as its manifest has it. A test keeps the two alike: reading a file would need one beside every bundle. */
export const version = "0.1.0"
