/** Suites that need a service. Where it cannot be used they are skipped, and one line says what to set; with `CI=true` they fail. */
import { describe, it } from "vitest"

const required = process.env.CI === "true"
const reported = new Set<string>()

/** Prints each problem once per test file. */
const report = (problem: string): void => {
  if (reported.has(problem)) return
  reported.add(problem)
  console.warn(problem)
}

/** Runs the suite when its service has no problem. */
export const whenUsable = (title: string, problem: string | undefined, suite: () => void): void => {
  if (problem === undefined) {
    describe(title, suite)
    return
  }
  report(problem)
  describe(title, () => {
    it.skipIf(!required)(problem, () => {
      throw new Error(problem)
    })
  })
}

/** True when a test of its own, outside of such a suite, is to be skipped. */
export const isSkipped = (problem: string | undefined): boolean => {
  if (problem !== undefined) report(problem)
  return problem !== undefined && !required
}
