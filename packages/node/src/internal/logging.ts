/** The log of a bus. */
import { LogFormat } from "@eventbus/core"
import * as Cause from "effect/Cause"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { CurrentLogAnnotations } from "effect/References"
import type { EventBusOptions, LogEntry } from "../EventBusOptions.ts"

export const layer = (log: NonNullable<EventBusOptions["log"]>): Layer.Layer<never> => {
  if (log === "text") return LogFormat.layerTimedText
  if (log === "json") return LogFormat.layerJson
  return Logger.layer(log === "off" ? [] : [toFunction(log)])
}

/** It answers what the function answers, so that the guard of log lines takes over the rejection of an async one. */
const toFunction = (log: (entry: LogEntry) => void) =>
  Logger.make<unknown, void>(({ message, logLevel, cause, date, fiber }) =>
    log({
      level: logLevel.toLowerCase() as LogEntry["level"],
      message: (Array.isArray(message) ? message : [message]).map(String).join(" "),
      time: date,
      error: cause.reasons.length === 0 ? undefined : Cause.squash(cause),
      annotations: fiber.getRef(CurrentLogAnnotations)
    })
  )
