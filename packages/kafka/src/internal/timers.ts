/** The longest delay that Node's timers know, in milliseconds. A longer one would end at once. */
export const longestDelayMillis = 2 ** 31 - 1
