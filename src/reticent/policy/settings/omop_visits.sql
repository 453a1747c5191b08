SELECT v.person_id AS person_id,
       v.visit_occurrence_id AS visit_id,
       p.year_of_birth AS year_of_birth,
       {sex} AS sex,
       l.zip AS postcode,
       l.state AS region,
       v.visit_concept_id AS visit_type,
       v.visit_start_date AS admission_date,
       c.diagnosis AS diagnosis
FROM {schema}visit_occurrence v
JOIN {schema}person p ON p.person_id = v.person_id
LEFT JOIN {schema}location l ON l.location_id = p.location_id{names}
LEFT JOIN ({conditions}) c ON c.visit_occurrence_id = v.visit_occurrence_id
ORDER BY v.visit_occurrence_id
