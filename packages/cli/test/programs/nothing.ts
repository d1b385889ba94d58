/** A module without handlers. */
export const unrelated = 1
