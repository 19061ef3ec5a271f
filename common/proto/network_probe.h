#pragma once
#include "common/proto/job_network.h"
