/**
 * A client that sends each command with a key. With the same key, the process does a command once, however often it is sent.
 */
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Schedule from "effect/Schedule"
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
