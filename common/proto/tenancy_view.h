// What tenants use (gtenant quota), their fair share (gshare), and the priorities of jobs (gprio).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/proto/job_ref.h"
#include "common/resources/resources.h"
#include "common/time/time.h"

namespace gantry::proto {

struct QuotaUse {  // use of one resource in one flavor; amounts as in common/resources/resources.h
  std::string flavor;  // "" = all together
  Resource resource = Resource::gpu;
  std::int64_t used = 0;              // for a cohort: used by all of its members
  std::int64_t nominal = 0;           // for a cohort: its own, and what its members lend
  std::int64_t borrowed = 0;          // used beyond nominal
  std::int64_t lent = 0;              // part of nominal that others use now
  std::optional<std::int64_t> limit;  // nominal + borrowing limit; not set = only the cohort's
  std::optional<std::int64_t> lend;   // lending limit; unset = all of it
  std::int64_t available =
      0;  // what it could use now without reclaiming; below 0: it exceeds its quota
  GANTRY_FIELDS(FIELD(1, flavor), FIELD(2, resource), FIELD(3, used), FIELD(4, nominal),
                FIELD(5, borrowed), FIELD(6, lent), FIELD(7, limit), FIELD(8, lend),
                FIELD(9, available))
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
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, parent), FIELD(3, is_cohort), FIELD(4, queued),
                FIELD(5, running), FIELD(6, max_queued), FIELD(7, max_running),
                FIELD(8, accepts_jobs), FIELD(9, cells), FIELD(10, used))
};

struct TenantUsage {               // shows what the asker may see
  std::vector<std::string> names;  // tenants or cohorts; none = all
  GANTRY_FIELDS(FIELD(1, names))
};

struct TenantUsageReply {
  std::vector<TenantUse> rows;  // cohorts before what is in them, else by name
  std::uint64_t revision = 0;
  Instant now{};
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, revision), FIELD(3, now))
};

struct ShareTree {                   // shows what the asker may see
  std::vector<std::string> tenants;  // none = all
  // A page: whole tenants, by the controller's number, from this one on; 0 = the first. Not set:
  // everything in one reply.
  std::optional<std::uint32_t> from{};
  GANTRY_FIELDS(FIELD(1, tenants), FIELD(2, from))
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
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, project), FIELD(3, user), FIELD(4, shares),
                FIELD(5, share), FIELD(6, usage), FIELD(7, rate), FIELD(8, part), FIELD(9, level),
                FIELD(10, borrows), FIELD(11, place), FIELD(12, queued), FIELD(13, running))
};

struct SharePage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<std::uint32_t> next;  // `from` of the next page; unset = the last
  std::vector<std::uint32_t> places;  // place of each of these tenants among all; 0 = served first
  GANTRY_FIELDS(FIELD(1, next), FIELD(2, places))
};

struct ShareTreeReply {
  std::vector<ShareRow> rows;  // depth first: a tenant, its projects, their users
  Duration half_life{};
  Instant now{};
  std::optional<SharePage> page{};
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, half_life), FIELD(3, now), FIELD(4, page))
};

// The values that order waiting jobs, most significant first (docs/tenancy.md, "Who is next").
struct PriorityTuples {
  JobFilter filter;
  std::uint32_t limit = 0;  // rows in one reply; 0 = the controller's maximum
  std::uint32_t after = 0;  // rows with a greater place
  // A page: rows of jobs with a greater id, ordered by id and without a place; `after` is not used.
  // The asker sorts them (priority_order.h), so the controller need not sort again for each page.
  std::optional<JobId> after_job{};
  GANTRY_FIELDS(FIELD(1, filter), FIELD(2, limit), FIELD(3, after), FIELD(4, after_job))
};

struct PriorityTerm {  // term of the weighted sum (priority_weights in gantry.yaml)
  std::string name;    // "age", "fairshare", "jobsize", "partition", "class"
  std::uint32_t weight = 0;
  double factor = 0;  // 0..1
  std::int64_t points = 0;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, weight), FIELD(3, factor), FIELD(4, points))
};

struct PriorityRow {
  std::uint32_t place = 0;  // place in the cluster's order now, from 1
  JobId job{};
  JobId array_job{};  // 0 = no array
  std::string array_tasks;
  std::string user, account;
  std::string partition;                 // its tenant, if it has one
  std::uint32_t partition_priority = 0;  // higher first
  std::string priority_class;
  std::int32_t class_value = 0;
  std::int32_t rank = 0;                   // class value raised by waiting; higher first
  std::uint32_t borrow_levels = 0;         // 0 = it would not borrow; bit k: k steps from the root
  std::vector<std::int64_t> share_values;  // by level from the root's child down; low values first
  std::optional<double> project_level;     // Fair Tree; higher first; unset = nothing used
  std::optional<double> user_level;
  std::int64_t priority = 0;  // the job's priority, with its tenant class and nice; higher first
  Instant since{};            // earlier first
  std::vector<PriorityTerm> terms;  // the terms of `priority`, with the weights in force
  std::int32_t site_factor = 0;     // part of `priority`
  GANTRY_FIELDS(FIELD(1, place), FIELD(2, job), FIELD(3, array_job), FIELD(4, array_tasks),
                FIELD(5, user), FIELD(6, account), FIELD(7, partition),
                FIELD(8, partition_priority), FIELD(9, priority_class), FIELD(10, class_value),
                FIELD(11, rank), FIELD(12, borrow_levels), FIELD(13, share_values),
                FIELD(14, project_level), FIELD(15, user_level), FIELD(16, priority),
                FIELD(17, since), FIELD(18, terms), FIELD(19, site_factor))
};

struct PriorityPage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<JobId> next;  // `after_job` of the next page; unset = the last
  GANTRY_FIELDS(FIELD(1, next))
};

struct PriorityTuplesReply {
  std::vector<PriorityRow> rows;  // by place; in a page by job
  bool more = false;
  Instant now{};
  std::optional<PriorityPage> page{};
  std::vector<PriorityTerm> weights{};  // in force, also where no job waits; older controllers: {}
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, more), FIELD(3, now), FIELD(4, page), FIELD(5, weights))
};

}  // namespace gantry::proto
