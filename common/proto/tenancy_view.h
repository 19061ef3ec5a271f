// What tenants use (gtenant quota), their fair share (gshare), and why jobs rank so (gprio).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/proto/job_ref.h"
#include "common/resources/resources.h"
#include "common/time/time.h"

namespace gantry::proto {

struct QuotaUse {  // use of one resource in one flavor; amounts as in common/resources/resources.h
  std::string flavor;  // "" = all together
  Resource resource = Resource::gpu;
  std::int64_t used = 0;              // for a cohort: by all of its members
  std::int64_t nominal = 0;           // for a cohort: its own, and what its members lend
  std::int64_t borrowed = 0;          // used beyond nominal
  std::int64_t lent = 0;              // of nominal, used by others now
  std::optional<std::int64_t> limit;  // nominal + borrowing limit; not set = only the cohort's
  std::optional<std::int64_t> lend;   // lending limit; unset = all of it
  std::int64_t available = 0;  // what it could use now without reclaiming; below 0: it is over
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "flavor", s.flavor);
    v(2, "resource", s.resource);
    v(3, "used", s.used);
    v(4, "nominal", s.nominal);
    v(5, "borrowed", s.borrowed);
    v(6, "lent", s.lent);
    v(7, "limit", s.limit);
    v(8, "lend", s.lend);
    v(9, "available", s.available);
  }
};

struct TenantUse {
  std::string name;
  std::string parent;  // cohort; "" = none
  bool is_cohort = false;
  std::uint64_t queued = 0;  // jobs, each array element one
  std::uint64_t running = 0;
  std::optional<std::uint32_t> max_queued, max_running;
  bool accepts_jobs = true;     // false: it is being removed (gtenant offboard)
  std::vector<QuotaUse> cells;  // one for each quota
  Resources used;               // of all resources, with or without quota
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "parent", s.parent);
    v(3, "is_cohort", s.is_cohort);
    v(4, "queued", s.queued);
    v(5, "running", s.running);
    v(6, "max_queued", s.max_queued);
    v(7, "max_running", s.max_running);
    v(8, "accepts_jobs", s.accepts_jobs);
    v(9, "cells", s.cells);
    v(10, "used", s.used);
  }
};

struct TenantUsage {               // shows what the asker may see
  std::vector<std::string> names;  // tenants or cohorts; none = all
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "names", s.names);
  }
};

struct TenantUsageReply {
  std::vector<TenantUse> rows;  // cohorts before what is in them, else by name
  std::uint64_t revision = 0;
  Instant now{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "revision", s.revision);
    v(3, "now", s.now);
  }
};

struct ShareTree {                   // shows what the asker may see
  std::vector<std::string> tenants;  // none = all
  // A page: whole tenants, by the controller's number, from this one on; 0 = the first. Not set:
  // everything in one reply.
  std::optional<std::uint32_t> from{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenants", s.tenants);
    v(2, "from", s.from);
  }
};

struct ShareRow {
  std::string tenant;
  std::string project;       // "" = the tenant itself
  std::string user;          // "" = the project itself
  std::uint32_t shares = 1;  // for a tenant: its weight in thousandths
  double share = 0;  // part of its siblings' shares, 0..1; siblings of a tenant are in its cohort
  double usage = 0;  // decayed, charge units times seconds, as of `now`
  double rate = 0;   // charge units per second of what runs now
  double part = 0;   // part of its siblings' usage, 0..1
  std::optional<double> level;  // share / part (Fair Tree); not set = nothing used: served first
  std::int64_t borrows = 0;     // for a tenant: its share value, millionths of what can be lent
  std::uint32_t place = 0;      // among its siblings, 1 is served first
  std::uint64_t queued = 0, running = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenant", s.tenant);
    v(2, "project", s.project);
    v(3, "user", s.user);
    v(4, "shares", s.shares);
    v(5, "share", s.share);
    v(6, "usage", s.usage);
    v(7, "rate", s.rate);
    v(8, "part", s.part);
    v(9, "level", s.level);
    v(10, "borrows", s.borrows);
    v(11, "place", s.place);
    v(12, "queued", s.queued);
    v(13, "running", s.running);
  }
};

struct SharePage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<std::uint32_t> next;  // `from` of the next page; unset = the last
  std::vector<std::uint32_t> places;  // place of each of these tenants among all; 0 = served first
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "next", s.next);
    v(2, "places", s.places);
  }
};

struct ShareTreeReply {
  std::vector<ShareRow> rows;  // depth first: a tenant, its projects, their users
  Duration half_life{};
  Instant now{};
  std::optional<SharePage> page{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "half_life", s.half_life);
    v(3, "now", s.now);
    v(4, "page", s.page);
  }
};

// The values that order waiting jobs, most significant first (docs/tenancy.md, "Who is next").
struct PriorityTuples {
  JobFilter filter;
  std::uint32_t limit = 0;  // rows in one reply; 0 = the controller's maximum
  std::uint32_t after = 0;  // rows with a greater place
  // A page: rows of jobs with a greater id, ordered by id and without a place; `after` is not used.
  // The asker sorts them (priority_order.h), so the controller need not sort anew for each page.
  std::optional<JobId> after_job{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "filter", s.filter);
    v(2, "limit", s.limit);
    v(3, "after", s.after);
    v(4, "after_job", s.after_job);
  }
};

struct PriorityTerm {  // term of the weighted sum (priority_weights in gantry.yaml)
  std::string name;    // "age", "fairshare", "jobsize", "partition", "class"
  std::uint32_t weight = 0;
  double factor = 0;  // 0..1
  std::int64_t points = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "weight", s.weight);
    v(3, "factor", s.factor);
    v(4, "points", s.points);
  }
};

struct PriorityRow {
  std::uint32_t place = 0;  // place in the cluster's order now, from 1
  JobId job{};
  JobId array_job{};  // 0 = no array
  std::string array_tasks;
  std::string user, account;
  std::string partition;                 // its tenant, where it has one
  std::uint32_t partition_priority = 0;  // higher first
  std::string priority_class;
  std::int32_t class_value = 0;
  std::int32_t rank = 0;                   // class value raised by waiting; higher first
  std::uint32_t borrow_levels = 0;         // 0 = it would not borrow; bit k: k steps from the root
  std::vector<std::int64_t> share_values;  // by level from the root's child down; low first
  std::optional<double> project_level;     // Fair Tree; higher first; unset = nothing used
  std::optional<double> user_level;
  std::int64_t priority = 0;  // the job's priority, with its tenant class and nice; higher first
  Instant since{};            // earlier first
  std::vector<PriorityTerm> terms;  // the terms of `priority`, with the weights in force
  std::int32_t site_factor = 0;     // part of `priority`
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "place", s.place);
    v(2, "job", s.job);
    v(3, "array_job", s.array_job);
    v(4, "array_tasks", s.array_tasks);
    v(5, "user", s.user);
    v(6, "account", s.account);
    v(7, "partition", s.partition);
    v(8, "partition_priority", s.partition_priority);
    v(9, "priority_class", s.priority_class);
    v(10, "class_value", s.class_value);
    v(11, "rank", s.rank);
    v(12, "borrow_levels", s.borrow_levels);
    v(13, "share_values", s.share_values);
    v(14, "project_level", s.project_level);
    v(15, "user_level", s.user_level);
    v(16, "priority", s.priority);
    v(17, "since", s.since);
    v(18, "terms", s.terms);
    v(19, "site_factor", s.site_factor);
  }
};

struct PriorityPage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<JobId> next;  // `after_job` of the next page; unset = the last
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "next", s.next);
  }
};

struct PriorityTuplesReply {
  std::vector<PriorityRow> rows;  // by place; of a page by job
  bool more = false;
  Instant now{};
  std::optional<PriorityPage> page{};
  std::vector<PriorityTerm> weights{};  // in force, also where no job waits; older controllers: {}
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "more", s.more);
    v(3, "now", s.now);
    v(4, "page", s.page);
    v(5, "weights", s.weights);
  }
};

}  // namespace gantry::proto
