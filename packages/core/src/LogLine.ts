/**
 * The log lines of the packages. They go to the loggers of the running fiber, as those of `Effect.log` do. A logger is a function of the program's, too: one that throws, as
 * one does whose disk is full, or an async one that is rejected, loses its line. It ends neither the process, nor the fiber, nor the work that the line is about (ruling 86).
 *
 * ```ts
 * import { LogLine } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * export const polling = (round: Effect.Effect<void>) =>
 *   Effect.forever(Effect.andThen(round, LogLine.info("The round is over")))
 * ```
 */

/** Lines of each level. `guarded` runs an effect whose loggers cannot fail. */
export { debug, error, guarded, info, warning } from "./internal/base/logLine.ts"
/** At most 20 lines a second about single records of each binding: `rateLimit` says whether one more may be written, and calls back with the number of those left out. */
export { type LogRateLimit, leftOutText, make as rateLimit } from "./internal/lifecycle/logRateLimit.ts"
/** The attempts of a record so far, in the words of the line about it. */
export { attemptsText } from "./internal/lifecycle/recordLines.ts"
