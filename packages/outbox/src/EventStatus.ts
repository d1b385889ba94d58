/** The states of a row, as stored in column `status` (outbox seed §4.2). NEW and RETRY rows are pending; DONE and DEAD rows are terminal. */

/** 0: written, and not delivered yet. */
export const NEW = 0
/** 1: delivered. Purge removes it after the retention. */
export const DONE = 1
/** 2: a delivery failed; the next one is due at `available_at`. */
export const RETRY = 2
/** 3: given up. It stays until an operator replays it or purge removes it. */
export const DEAD = 3
