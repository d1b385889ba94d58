/** The answers of the API before its program is built: alive, and not ready. */
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Paths from "./paths.ts"

export const of = ({ live }: Paths.Paths, path: string): HttpServerResponse.HttpServerResponse =>
  path === live
    ? HttpServerResponse.jsonUnsafe({ status: "UP" })
    : HttpServerResponse.jsonUnsafe(
        { status: "DOWN", _tag: "Starting", message: "The program is starting." },
        { status: 503 }
      )
