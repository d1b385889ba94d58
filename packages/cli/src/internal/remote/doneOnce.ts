/**
 * A client that sends each command with a key. With the same key, the process does a command once, however often it is sent.
 */
import { Effect, Schedule } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { Redirected } from "./adminFetch.ts"

/** Repeats a command whose answer got lost, as it was, with its key. */
export const doneOnce = (http: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(HttpClient.mapRequest(http, withKey), (answered, { method }) =>
    method === "POST"
      ? Effect.retry(answered, {
          times: 2,
          schedule: Schedule.exponential("300 millis"),
          while: ({ reason }) => reason._tag === "TransportError" && !(reason.cause instanceof Redirected)
        })
      : answered
  )

const withKey = (request: HttpClientRequest.HttpClientRequest) =>
  request.method === "POST"
    ? HttpClientRequest.setHeader(request, "idempotency-key", globalThis.crypto.randomUUID())
    : request
