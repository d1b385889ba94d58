/** The states of a row, as stored. NEW and RETRY are pending; DONE and DEAD are terminal. */
export const NEW = 0
export const DONE = 1
export const RETRY = 2
export const DEAD = 3

export type EventStatus = typeof NEW | typeof DONE | typeof RETRY | typeof DEAD
