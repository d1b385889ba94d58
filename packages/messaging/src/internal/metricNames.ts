/** The metrics of messages, behind `{broker}.messaging.`. */

/** Counters, by the last part of the name and the label `operation`. */
export const counters = {
  sent: { suffix: "messages.sent", description: "Messages that the broker acknowledged" },
  received: { suffix: "messages.received", description: "Messages that a handler has handled" },
  failed: { suffix: "messages.failed", description: "Sends that failed" },
  dlq: { suffix: "messages.dlq", description: "Messages that were dead-lettered" }
} as const

/** Timers, in seconds. */
export const timers = {
  send: { suffix: "send.latency", description: "Seconds from the call of a send to the broker's acknowledgement" },
  process: { suffix: "process.latency", description: "Seconds of one call of a handler" }
} as const
