// SPDX-License-Identifier: Apache-2.0
#ifndef AS_PAGER_FETCH_H
#define AS_PAGER_FETCH_H

// Pages that come in ahead of their need (ahead.h says how far).
//
// Thread-safety: every function may be called from any thread.

struct actswap_page;
struct as_pager;

// `page` was needed on `stream`: queues the copies of what is needed next. Calls verbs; the
// lock is not held. What cannot come ahead comes when it is needed.
void as_fetch_ahead(struct as_pager *pager, const struct actswap_page *page,
                    void *stream);

#endif
