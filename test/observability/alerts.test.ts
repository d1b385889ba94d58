import { Alerts } from "@eventbus/observability"
import { describe, expect, it } from "vitest"

const levels = (limits: Alerts.Limits, figures: ReadonlyArray<number | bigint>) =>
  figures.map((figure) => Alerts.evaluate(figure, limits))

describe("alerts", () => {
  it.each([
    ["financial", 100, 1_000],
    ["notification", 500, 5_000],
    ["other", 1_000, 10_000]
  ] as const)(
    "ERR-13 lag of %s topics: above %i a warning, above %i critical; a value equal to a limit raises no alert",
    (kind, warning, critical) => {
      expect(levels(Alerts.lag[kind], [0, warning, warning + 1, critical, critical + 1, 2n ** 62n])).toEqual([
        undefined,
        undefined,
        "warning",
        "warning",
        "critical",
        "critical"
      ])
    }
  )

  it("ERR-14 dead letters: the first is a warning, the eleventh critical; an unknown figure raises no alert", () => {
    expect(levels(Alerts.deadLetters, [0, 1, 10, 11, Number.NaN, -1])).toEqual([
      undefined,
      "warning",
      "warning",
      "critical",
      undefined,
      undefined
    ])
  })
})
