import { readFile, rm, writeFile } from "node:fs/promises"
import { Data, Effect, Schedule } from "effect"
import { isAlive } from "./isAlive.ts"

class LockIsHeld extends Data.TaggedError("LockIsHeld") {}

const acquire = (file: string) =>
  Effect.tryPromise({
    try: () => writeFile(file, String(process.pid), { flag: "wx" }),
    catch: () => new LockIsHeld()
  }).pipe(
    Effect.catch((held) =>
      Effect.promise(async () => {
        const owner = Number(await readFile(file, "utf8").catch(() => ""))
        // 0: the owner has made the file and not yet written its pid.
        if (owner !== 0 && !isAlive(owner)) await rm(file, { force: true })
      }).pipe(Effect.andThen(Effect.fail(held)))
    ),
    Effect.retry(Schedule.spaced("300 millis")),
    Effect.orDie // unreachable: it is retried for as long as it fails
  )

/** Runs `effect` while no other process on this machine does so under the same file. A dead owner's lock is taken over. */
export const withFileLock = <A, E, R>(file: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    acquire(file),
    () => effect,
    () => Effect.promise(() => rm(file, { force: true }))
  )
